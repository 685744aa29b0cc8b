"""Coverage-guided fuzzing of a channel past CONNECT; `README.md` beside this file says how to use it."""
