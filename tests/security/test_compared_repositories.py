"""Which repository and which project `preview --against` compares with, whatever files a branch brings."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deployer.app.spec_diff.git_files import extract_specs
from deployer.app.spec_diff.git_repository import Repository, find_repository
from deployer.errors import InvalidInput
from tests.cli.conftest import Deployer
from tests.projects import INSTANCE, make_project, table

RULES = "kind: Policy\nrule: destroys-data\n"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org", "-c", "protocol.file.allow=always")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make_lake(folder: Path) -> Path:
    specs = {"demo.yaml": INSTANCE, "flights.yaml": table("flights"), "planes.yaml": table("planes")}
    made = make_project(folder, specs)
    (made / "policies").mkdir()
    (made / "policies" / "rules.yaml").write_text(RULES, encoding="utf-8")
    return made


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    """A repository on the branch `evil`, which deletes a table of the project in its folder `lake`."""
    top = tmp_path / "mono"
    top.mkdir()
    git(top, "init", "-q", "-b", "main")
    lake = make_lake(top / "lake")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "base")
    git(top, "checkout", "-qb", "evil")
    (lake / "specs" / "planes.yaml").unlink()
    return top


def commit(top: Path, message: str = "Tidy") -> None:
    git(top, "add", "-A", "-f")
    git(top, "commit", "-qm", message)


def embed_bare_repository(folder: Path, tmp_path: Path, config: str = "", name: str = "") -> None:
    """The files of a bare repository in `folder/name`, in whose main the branch's own files are."""
    copy = shutil.copytree(folder, tmp_path / "copy")
    git(copy, "init", "-q", "-b", "main")
    commit(copy, "forged")
    git(copy, "repack", "-adq")
    bare = folder / name
    (bare / "refs" / "heads").mkdir(parents=True)
    shutil.copytree(copy / ".git" / "objects", bare / "objects")
    (bare / "refs" / "heads" / "main").write_text(git(copy, "rev-parse", "HEAD"), encoding="utf-8")
    (bare / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
    (bare / "config").write_text(config or plain, encoding="utf-8")


def is_seen(ran: object) -> bool:
    """Whether the deletion is shown, and judged by the rules of the base."""
    return (getattr(ran, "code"), "table/air.planes" in getattr(ran, "out")) == (3, True)  # noqa: B009


@pytest.mark.parametrize("stands", ["in the project", "at the top", "below the project"])
def test_an_embedded_bare_repository_is_passed_over(
    stands: str,
    mono: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: the files of a bare repository in the project's folder chose what was compared, and with what rules."""
    embed_bare_repository(mono / "lake", tmp_path)
    commit(mono)
    monkeypatch.chdir({"in the project": mono / "lake", "at the top": mono}.get(stands, mono / "lake" / "specs"))
    where = ("--project", "lake") if stands == "at the top" else ()
    ran = deployer("preview", *where, "--against", "main", "--policy-only")
    assert is_seen(ran), ran


@pytest.mark.parametrize("place", [".", "..", "../.."])
def test_one_in_any_folder_above_is_passed_over_too(
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: the folder of the embedded repository is any one between the work tree's and the project's."""
    top = tmp_path / "mono"
    lake = make_lake(top / "a" / "b" / "lake")
    git(top, "init", "-q", "-b", "main")
    commit(top, "base")
    (lake / "specs" / "planes.yaml").unlink()
    embed_bare_repository((lake / place).resolve(), tmp_path)
    commit(top)
    git(top, "checkout", "-qb", "evil")
    git(top, "branch", "-f", "main", "HEAD~1")
    monkeypatch.chdir(lake)
    ran = deployer("preview", "--against", "main", "--policy-only")
    assert is_seen(ran), ran


HELPERS = """\
[core]
	repositoryformatversion = 1
	bare = false
	worktree = .
	fsmonitor = "sh x.sh"
	hooksPath = .
	pager = "sh x.sh"
	alternateRefsCommand = "sh x.sh"
[extensions]
	partialClone = origin
[remote "origin"]
	url = "ext::sh x.sh"
	promisor = true
	fetch = +refs/heads/*:refs/remotes/origin/*
[protocol "ext"]
	allow = always
"""


@pytest.mark.parametrize("where", ["in the tree", "the checkout's own"])
def test_nothing_of_a_branch_runs(where: str, mono: Path, tmp_path: Path, deployer: Deployer) -> None:
    """F1: a promisor remote with an `ext::` address ran a program of the branch for a missing object."""
    lake, script = mono / "lake", f"#!/bin/sh\ntouch {tmp_path}/pwned\n"
    (lake / "x.sh").write_text(script, encoding="utf-8")
    (lake / "x.sh").chmod(0o755)
    if where == "in the tree":
        embed_bare_repository(lake, tmp_path, HELPERS)
        (lake / "refs" / "heads" / "main").write_text("1" * 40, encoding="utf-8")
        commit(mono)
        assert is_seen(deployer("preview", "--project", str(lake), "--against", "main", "--policy-only"))
    else:
        commit(mono)
        missing = "1" * 40
        text = HELPERS.replace("bare = false\n\tworktree = .", "bare = false").replace("x.sh", str(lake / "x.sh"))
        (mono / ".git" / "config").write_text(text, encoding="utf-8")
        (mono / ".git" / "refs" / "heads" / "away").write_text(missing, encoding="utf-8")
        assert deployer("preview", "--project", str(lake), "--against", "away").code == 1
        assert deployer("preview", "--project", str(lake), "--against", missing).code == 1
        assert is_seen(deployer("preview", "--project", str(lake), "--against", "main", "--policy-only"))
    assert not (tmp_path / "pwned").exists()


def gitfile_to_a_committed_repository(mono: Path, tmp_path: Path) -> Path:
    embed_bare_repository(mono / "lake", tmp_path, name="objects-of-us")
    (mono / "lake" / ".git").write_text("gitdir: objects-of-us\n", encoding="utf-8")
    return mono / "lake"


def gitfile_to_one_elsewhere_in_the_tree(mono: Path, tmp_path: Path) -> Path:
    embed_bare_repository(mono, tmp_path, name="elsewhere")
    (mono / "lake" / ".git").write_text("gitdir: ../elsewhere\n", encoding="utf-8")
    return mono / "lake"


def link_to_a_committed_repository(mono: Path, tmp_path: Path) -> Path:
    embed_bare_repository(mono / "lake", tmp_path, name="objects-of-us")
    (mono / "lake" / ".git").symlink_to("objects-of-us")
    return mono / "lake"


def repository_of_its_own(mono: Path, tmp_path: Path) -> Path:
    git(mono / "lake", "init", "-q", "-b", "main")
    commit(mono / "lake")
    return mono / "lake"


def submodule(mono: Path, tmp_path: Path) -> Path:
    theirs = shutil.copytree(mono / "lake", tmp_path / "theirs")
    git(theirs, "init", "-q", "-b", "main")
    commit(theirs)
    git(mono, "rm", "-rqf", "lake")
    shutil.rmtree(mono / "lake", ignore_errors=True)
    git(mono, "submodule", "add", "-q", str(theirs), "lake")
    commit(mono)
    return mono / "lake"


def project_in_a_submodule(mono: Path, tmp_path: Path) -> Path:
    theirs = tmp_path / "theirs"
    shutil.copytree(mono / "lake", theirs / "inner")
    git(theirs, "init", "-q", "-b", "main")
    commit(theirs)
    git(mono, "submodule", "add", "-q", str(theirs), "sub")
    commit(mono)
    return mono / "sub" / "inner"


def broken_gitfile(mono: Path, tmp_path: Path) -> Path:
    (mono / "lake" / ".git").write_text("gitdir: nowhere\n", encoding="utf-8")
    return mono / "lake"


@pytest.mark.parametrize(
    "made",
    [
        gitfile_to_a_committed_repository,
        gitfile_to_one_elsewhere_in_the_tree,
        link_to_a_committed_repository,
        repository_of_its_own,
        submodule,
        project_in_a_submodule,
        broken_gitfile,
    ],
)
def test_a_repository_that_a_branch_could_bring_is_refused(
    made: Callable[[Path, Path], Path],
    mono: Path,
    tmp_path: Path,
    deployer: Deployer,
) -> None:
    """F1: what a repository inside of another says is what the outer one's branch wants."""
    folder = made(mono, tmp_path)
    ran = deployer("preview", "--project", str(folder), "--against", "main")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot trust this repository" in ran.err or "names no Git folder" in ran.err, ran.err


def linked_work_tree(mono: Path, tmp_path: Path) -> Path:
    commit(mono)
    git(mono, "checkout", "-q", "--detach")
    git(mono, "worktree", "add", "-q", str(tmp_path / "tree"), "evil")
    return tmp_path / "tree" / "lake"


def work_tree_of_a_bare_clone(mono: Path, tmp_path: Path) -> Path:
    commit(mono)
    home = tmp_path / "home"
    git(tmp_path, "clone", "-q", "--bare", str(mono), str(home / ".bare"))
    (home / ".git").write_text("gitdir: ./.bare\n", encoding="utf-8")
    git(home / ".bare", "worktree", "add", "-q", str(home / "tree"), "evil")
    return home / "tree" / "lake"


def git_folder_elsewhere(mono: Path, tmp_path: Path) -> Path:
    commit(mono)
    shutil.move(mono / ".git", tmp_path / "kept.git")
    (mono / ".git").write_text(f"gitdir: {tmp_path / 'kept.git'}\n", encoding="utf-8")
    return mono / "lake"


def linked_git_folder(mono: Path, tmp_path: Path) -> Path:
    commit(mono)
    shutil.move(mono / ".git", tmp_path / "kept.git")
    (mono / ".git").symlink_to(tmp_path / "kept.git")
    return mono / "lake"


def clone_below_another_work_tree(mono: Path, tmp_path: Path) -> Path:
    commit(mono)
    (tmp_path / "dotfiles").write_text("mine", encoding="utf-8")
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", "dotfiles")
    git(tmp_path, "commit", "-qm", "mine")
    return mono / "lake"


def link_of_the_user(mono: Path, tmp_path: Path) -> Path:
    (tmp_path / "here").symlink_to(mono / "lake")
    return tmp_path / "here"


@pytest.mark.parametrize(
    "made",
    [
        linked_work_tree,
        work_tree_of_a_bare_clone,
        git_folder_elsewhere,
        linked_git_folder,
        clone_below_another_work_tree,
        link_of_the_user,
    ],
)
def test_repositories_that_people_set_up_work(
    made: Callable[[Path, Path], Path],
    mono: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    monkeypatch.chdir(made(mono, tmp_path))
    ran = deployer("preview", "--against", "main", "--policy-only")
    assert is_seen(ran), ran


def test_the_environment_chooses_no_repository(
    mono: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: variables of Git and configuration of the user or the machine do not take part."""
    embed_bare_repository(mono / "lake", tmp_path, name="theirs")
    for name, value in {
        "GIT_DIR": str(mono / "lake" / "theirs"),
        "GIT_WORK_TREE": str(mono / "lake"),
        "GIT_CONFIG_PARAMETERS": "'core.worktree=/'",
        "GIT_OBJECT_DIRECTORY": str(mono / "lake" / "theirs" / "objects"),
        "GIT_NAMESPACE": "theirs",
        "GIT_EXEC_PATH": str(mono),
    }.items():
        monkeypatch.setenv(name, value)
    ran = deployer("preview", "--project", str(mono / "lake"), "--against", "main", "--policy-only")
    assert is_seen(ran), ran


def test_git_is_not_a_program_of_the_branch(
    mono: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: relative folders of PATH, and those in the work tree, are not searched for `git`."""
    for folder in (mono, mono / "lake" / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n", encoding="utf-8")
        (folder / "git").chmod(0o755)
    monkeypatch.chdir(mono / "lake")
    monkeypatch.setenv("PATH", os.pathsep.join(["", "..", "bin", str(mono / "lake" / "bin"), os.environ["PATH"]]))
    assert is_seen(deployer("preview", "--against", "main", "--policy-only"))
    assert not (tmp_path / "pwned").exists()
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{mono / 'lake' / 'bin'}")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "git is not installed" in ran.err) == (1, True), ran.err


@pytest.mark.parametrize("kind", ["tag", "branch"])
def test_a_name_that_two_refs_have_is_refused(kind: str, mono: Path, deployer: Deployer) -> None:
    """F1: a branch or tag of the name that is compared with would take its place."""
    commit(mono)
    git(mono, "update-ref", "refs/remotes/origin/main", "main")
    git(mono, kind, "origin/main", "evil")
    where = ("preview", "--project", str(mono / "lake"), "--policy-only", "--against")
    ran = deployer(*where, "origin/main")
    assert (ran.code, "more than one branch, tag or commit is called 'origin/main'" in ran.err) == (1, True), ran
    assert is_seen(deployer(*where, "refs/remotes/origin/main"))
    assert is_seen(deployer(*where, git(mono, "rev-parse", "main")))


@pytest.mark.parametrize("ref", [":/Tidy", "main:lake", "main\n", "--all", "main^{tree}", "lake", "\0", "evil..main"])
def test_what_names_no_commit_is_refused(ref: str, mono: Path, deployer: Deployer) -> None:
    """F1: files, searches in messages of commits, options and ranges name no commit."""
    commit(mono)
    ran = deployer("preview", "--project", str(mono / "lake"), f"--against={ref}")
    assert (ran.code, "there is no commit" in ran.err) == (1, True), ran.err


def linked_project(mono: Path) -> None:
    shutil.copytree(mono / "lake", mono / "other")
    shutil.rmtree(mono / "lake")
    (mono / "lake").symlink_to("other")


def moved_project(mono: Path) -> None:
    shutil.move(mono / "lake", mono / "other")
    (mono / "lake").mkdir()
    shutil.copytree(mono / "other", mono / "lake", dirs_exist_ok=True)
    (mono / "lake" / "Pulumi.yaml").unlink()
    (mono / "lake" / "Pulumi.yaml").symlink_to("../other/Pulumi.yaml")


def linked_above(mono: Path) -> None:
    shutil.copytree(mono / "lake", mono / "more" / "deep")
    commit(mono)
    git(mono, "branch", "-f", "main", "HEAD")
    shutil.copytree(mono / "more", mono / "less")
    shutil.rmtree(mono / "more")
    (mono / "more").symlink_to("less")


@pytest.mark.parametrize(
    ("change", "folder"), [(linked_project, "lake"), (moved_project, "lake"), (linked_above, "more/deep")]
)
@pytest.mark.parametrize("how", ["--project", "the current folder"])
def test_a_link_does_not_change_which_project_is_compared(
    change: Callable[[Path], None],
    folder: str,
    how: str,
    mono: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1, F29: a link in place of the project's folder made everything new, and hid what is deleted."""
    change(mono)
    commit(mono)
    monkeypatch.chdir(mono if how == "--project" else mono / folder)
    where = ("--project", folder) if how == "--project" else ()
    ran = deployer("preview", *where, "--against", "main")
    assert (ran.code, ran.out) == (1, ""), ran
    assert "is a link in this branch" in ran.err or "leads out of the project's folder" in ran.err, ran.err


def test_a_nearer_project_file_does_not_change_which_project_is_compared(
    mono: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: a `Pulumi.yaml` that a branch adds, or removes, would have another project compared."""
    lake = mono / "lake"
    shutil.copytree(lake / "stacks", lake / "specs" / "stacks")
    text = (lake / "Pulumi.yaml").read_text(encoding="utf-8")
    (lake / "specs" / "Pulumi.yaml").write_text(text.replace("default: specs", "default: ."))
    commit(mono)
    monkeypatch.chdir(lake / "specs")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "name the project" in ran.err) == (1, True), ran.err
    git(mono, "branch", "-f", "main", "HEAD")
    (lake / "specs" / "Pulumi.yaml").unlink()
    commit(mono)
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "name the project" in ran.err) == (1, True), ran.err


def test_a_project_that_moved_is_not_shown_as_new(
    mono: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F1: what a moved project deletes is unknown, which is an error and not a plan."""
    shutil.move(mono / "lake", mono / "other")
    commit(mono)
    monkeypatch.chdir(mono / "other")
    ran = deployer("preview", "--against", "main")
    assert (ran.code, "removes or moves the project" in ran.err) == (1, True), ran.err


@pytest.mark.parametrize("side", ["branch", "base"])
def test_specs_that_are_a_link_are_not_shown_as_new(
    side: str,
    mono: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F29: `--specs` names a place; a link there made everything new."""
    lake = mono / "lake"
    monkeypatch.chdir(lake)
    if side == "base":
        commit(mono)
    (lake / "specs").rename(lake / "real")
    (lake / "specs").symlink_to("real")
    commit(mono)
    if side == "base":
        git(mono, "branch", "-f", "main", "HEAD")
        (lake / "specs").unlink()
        shutil.copytree(lake / "real", lake / "specs")
        commit(mono)
    ran = deployer("preview", "--specs", "specs", "--against", "main")
    assert (ran.code, ran.out) == (1, ""), ran
    assert "--against does not follow links" in ran.err, ran.err


def test_specs_beside_the_project_are_not_compared_with_themselves(
    mono: Path,
    monkeypatch: pytest.MonkeyPatch,
    deployer: Deployer,
) -> None:
    """F29: specs of the repository outside of the project's folder were the branch's on both sides."""
    (mono / "lake" / "specs").rename(mono / "specs")
    commit(mono)
    monkeypatch.chdir(mono / "lake")
    ran = deployer("preview", "--specs", "../specs", "--against", "main")
    assert (ran.code, "outside of it" in ran.err) == (1, True), ran.err


def tree_of(top: Path, *entries: str) -> str:
    """A commit of a tree made of lines as `git ls-tree` prints them, which `git add` would refuse."""
    text = "\0".join(entries) + "\0"
    command = ["git", "-C", str(top), "mktree", "-z", "--missing"]
    made = subprocess.run(command, input=text.encode(), check=True, capture_output=True).stdout.decode().strip()
    return git(top, "commit-tree", "-m", "odd", made)


def odd_trees(top: Path) -> dict[str, str]:
    blob = git(top, "hash-object", "-w", "-t", "blob", str(top / "lake" / "Pulumi.yaml"))
    inner = subprocess.run(
        ["git", "-C", str(top), "mktree", "-z"],
        input=f"100644 blob {blob}\tx.yaml\0".encode(),
        check=True,
        capture_output=True,
    )
    tree = inner.stdout.decode().strip()
    return {
        "above": tree_of(top, f"040000 tree {tree}\t.."),
        "git folder": tree_of(top, f"040000 tree {tree}\t.git"),
        "Git folder": tree_of(top, f"040000 tree {tree}\t.GIT"),
        "link": tree_of(top, f"120000 blob {blob}\tx.yaml"),
        "policies link": tree_of(top, f"120000 blob {blob}\tpolicies"),
        "policies submodule": tree_of(top, f"160000 commit {git(top, 'rev-parse', 'HEAD')}\tpolicies"),
        "file and folder": tree_of(top, f"100644 blob {blob}\tx.yaml", f"040000 tree {tree}\tx.yaml"),
    }


@pytest.mark.parametrize(
    "name", ["above", "git folder", "Git folder", "link", "policies link", "policies submodule", "file and folder"]
)
def test_odd_trees_write_nothing_outside(name: str, mono: Path, tmp_path: Path) -> None:
    """F1: names that lead out of the folder, links and submodules are refused."""
    target = tmp_path / "target" / "inside"
    target.mkdir(parents=True)
    with pytest.raises((InvalidInput, OSError)):
        extract_specs(find_repository(mono), odd_trees(mono)[name], mono, target)
    assert [path.name for path in target.parent.iterdir()] == ["inside"]


def test_a_name_with_a_newline_is_a_file_of_that_name(mono: Path, tmp_path: Path) -> None:
    (mono / "lake" / "a\nb.yaml").write_text("x: 1\n", encoding="utf-8")
    commit(mono)
    extract_specs(Repository(mono, mono / ".git"), git(mono, "rev-parse", "evil"), mono / "lake", tmp_path / "target")
    assert (tmp_path / "target" / "a\nb.yaml").read_text(encoding="utf-8") == "x: 1\n"


def test_attributes_of_a_branch_change_no_content(mono: Path, tmp_path: Path) -> None:
    """F1: filters, substitution and conversion of line ends, which `.gitattributes` asks for, take no part."""
    text = "x: $Format:%H$ $Id$\r\n"
    (mono / "lake" / "x.yaml").write_bytes(text.encode())
    commit(mono)
    (mono / ".gitattributes").write_text("* export-subst export-ignore filter=evil ident text eol=lf diff=evil\n")
    git(mono, "config", "filter.evil.smudge", f"touch {tmp_path}/pwned; cat")
    git(mono, "config", "diff.evil.textconv", f"touch {tmp_path}/pwned; cat")
    git(mono, "add", ".gitattributes")
    git(mono, "commit", "-qm", "attributes")
    extract_specs(Repository(mono, mono / ".git"), git(mono, "rev-parse", "evil"), mono / "lake", tmp_path / "target")
    assert (tmp_path / "target" / "x.yaml").read_bytes() == text.encode()
    assert not (tmp_path / "pwned").exists()


def test_too_many_files_are_refused(mono: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1: a commit does not fill the disk."""
    repository = find_repository(mono)
    for name in ("_MOST_FILES", "_MOST_BYTES"):
        with monkeypatch.context() as limited:
            limited.setattr(f"deployer.app.spec_diff.git_files.{name}", 1)
            with pytest.raises(InvalidInput, match="the project has more than"):
                extract_specs(repository, repository.resolve("main"), mono / "lake", tmp_path / "target")
    assert not (tmp_path / "target").exists()


def test_a_git_folder_of_another_user_is_refused(mono: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F1: a folder that everybody may write, such as /tmp, holds the `.git` of anybody."""
    owners = {mono / ".git": 1234, mono / "lake": os.geteuid()}
    monkeypatch.setattr("deployer.app.spec_diff.git_repository._owner", owners.__getitem__)
    with pytest.raises(InvalidInput, match="belongs to another user"):
        find_repository(mono / "lake")
    owners[mono / "lake"] = 1234  # a container's user in a checkout of the machine's
    assert find_repository(mono / "lake").top == mono
