"""The files of a new project as the package has them. Each `preview` compares the program, so this imports little."""

from __future__ import annotations

from importlib.resources import files

#: Where each file of the package goes.
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
#: The files of the program in its folder, and of the package. They hold nothing of a single project.
PROGRAM = {"__main__.py": "stacks/main.py.txt"}


def packaged(source: str) -> bytes:
    """Returns a file of the package, as it is before a project's values are put in."""
    return files("deployer.app.starter").joinpath("files", *source.split("/")).read_bytes()
