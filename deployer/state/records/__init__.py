"""Records of tables in their datasets' folders, from which a lost state store is rebuilt."""
