"""Stage `figures`: tables and volumes in; figures out. Imports nothing that trains."""
