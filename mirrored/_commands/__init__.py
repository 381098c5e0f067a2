"""The commands of the program ``mirrored``: `command_line` has the table, a module each command."""
