"""What loads and runs came to, printed the same wherever they ran."""
