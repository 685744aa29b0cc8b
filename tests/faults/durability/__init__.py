"""What is acknowledged is kept, through any crash: clients that record what they saw, kills, and a checker."""
