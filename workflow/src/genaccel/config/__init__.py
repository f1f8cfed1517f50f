"""The composed config: the settings of every stage in one checked file. No stage imports it."""
