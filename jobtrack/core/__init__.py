"""Pure rules: no clock, chance, environment, log, file or network. Time and chance are arguments."""
