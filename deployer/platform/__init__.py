"""What the other packages stand on: AWS, files, object storage, processes, SQL, the clock and text. It knows no tables.

All other packages may import it.
"""
