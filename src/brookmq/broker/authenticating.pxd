# Compiled as it is: no types are needed, only the interpreter's overhead goes.
