"""The code and packages of jobs as files to upload."""
