"""Objects and their variables in files, from which training goes on."""
