"""The files of a new project in the package. Each `preview` compares the program with them, so this module imports
little."""

from __future__ import annotations

from importlib.resources import files

#: The path in a project of each file of the package.
FILES = {
    "Pulumi.yaml.txt": "Pulumi.yaml",
    "README.md.txt": "README.md",
    "policies/rules.yaml.txt": "policies/rules.yaml",
    "data/trips.csv.txt": "data/trips.csv",
    "gitignore.txt": ".gitignore",
    "specs/instance.yaml.txt": "specs/instance.yaml",
    "specs/trips.yaml.txt": "specs/trips.yaml",
    "stacks/main.py.txt": "stacks/__main__.py",
    "github/dependabot.yml.txt": ".github/dependabot.yml",
    "github/preview_comment.py.txt": ".github/preview_comment.py",
    "workflows/comment.yaml.txt": ".github/workflows/comment.yaml",
    "workflows/deploy.yaml.txt": ".github/workflows/deploy.yaml",
    "workflows/preview.yaml.txt": ".github/workflows/preview.yaml",
    "workflows/preview-live.yaml.txt": ".github/workflows/preview-live.yaml",
}
#: The files of the program, by their names in its folder. They contain nothing that is specific to a project.
PROGRAM = {"__main__.py": "stacks/main.py.txt"}


def packaged(source: str) -> bytes:
    """Returns a file of the package, without a project's values."""
    return files("deployer.app.starter").joinpath("files", *source.split("/")).read_bytes()
