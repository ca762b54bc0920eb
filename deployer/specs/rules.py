"""Every rule that specs must keep, by its stable name; each has a bad spec in tests/specs/bad."""

from __future__ import annotations

from enum import StrEnum


class Rule(StrEnum):
    """The names that machines see in `deployer validate --json`."""

    # text
    YAML_SYNTAX = "yaml-syntax"
    YAML_LIMIT = "yaml-limit"
    TAB = "tab"
    DUPLICATE_KEY = "duplicate-key"
    BAD_KEY = "bad-key"
    BAD_MERGE = "bad-merge"
    UNKNOWN_TAG = "unknown-tag"
    UNKNOWN_ALIAS = "unknown-alias"
    ALIAS_CYCLE = "alias-cycle"
    ALIAS_LIMIT = "alias-limit"
    # files
    NO_SPECS = "no-specs"
    UNREADABLE_FILE = "unreadable-file"
    INCLUDE_MATCHES_NOTHING = "include-matches-nothing"
    INCLUDE_OUTSIDE = "include-outside"
    INCLUDE_CYCLE = "include-cycle"
    SPECS_LIMIT = "specs-limit"
    # shape
    UNKNOWN_KIND = "unknown-kind"
    UNKNOWN_FIELD = "unknown-field"
    MISSING_FIELD = "missing-field"
    WRONG_TYPE = "wrong-type"
    UNKNOWN_VALUE = "unknown-value"
    BAD_TEXT = "bad-text"
    OUT_OF_RANGE = "out-of-range"
    # column types
    UNKNOWN_TYPE = "unknown-type"
    TYPE_SYNTAX = "type-syntax"
    TYPE_PARAMETER = "type-parameter"
    DUPLICATE_FIELD = "duplicate-field"
    UNSUPPORTED_TYPE = "unsupported-type"
    NEEDS_STORAGE_VERSION = "needs-storage-version"
    UNKNOWN_TIME_ZONE = "unknown-time-zone"
    # environments
    UNKNOWN_VARIABLE = "unknown-variable"
    DUPLICATE_VARIABLE = "duplicate-variable"
    VARIABLE_SYNTAX = "variable-syntax"
    VARIABLE_TYPE = "variable-type"
    VARIABLE_WITHOUT_VALUE = "variable-without-value"
    UNKNOWN_TARGET = "unknown-target"
    BAD_REMOVAL = "bad-removal"
    # names and references
    NO_INSTANCE = "no-instance"
    SECOND_INSTANCE = "second-instance"
    DUPLICATE_TABLE = "duplicate-table"
    DUPLICATE_SCHEMA = "duplicate-schema"
    DUPLICATE_CLUSTER = "duplicate-cluster"
    DUPLICATE_COLUMN = "duplicate-column"
    UNKNOWN_SCHEMA = "unknown-schema"
    REPEATED_SCHEMA = "repeated-schema"
    SCHEMA_CYCLE = "schema-cycle"
    RESERVED_NAME = "reserved-name"
    NO_COLUMNS = "no-columns"
    # instance
    ROOT_SCHEME = "root-scheme"
    ROOT_CREDENTIALS = "root-credentials"
    ROOT_BUCKET = "root-bucket"
    STATE_BACKEND = "state-backend"
    CLUSTER_SETTING = "cluster-setting"
    AWS_SETTING = "aws-setting"
    REPEATED_ADDRESS = "repeated-address"
    # keys and partitions
    UNKNOWN_KEY = "unknown-key"
    REPEATED_KEY = "repeated-key"
    OVERLAPPING_KEYS = "overlapping-keys"
    NULLABLE_KEY = "nullable-key"
    KEY_TYPE = "key-type"
    UNIQUE_WITHOUT_KEYS = "unique-without-keys"
    SPLIT_WITHOUT_KEYS = "split-without-keys"
    SPLIT_TOO_LONG = "split-too-long"
    SPLIT_EMPTY = "split-empty"
    SPLIT_TYPE = "split-type"
    SPLIT_RANGE = "split-range"
    SPLIT_ORDER = "split-order"
    SPLIT_REPEATED = "split-repeated"
    # indexes
    DUPLICATE_INDEX = "duplicate-index"
    INDEX_COLUMNS = "index-columns"
    UNKNOWN_INDEX_COLUMN = "unknown-index-column"
    INDEX_TYPE = "index-type"
    INDEX_PARAMETER = "index-parameter"
    # embeddings
    EMBEDDING = "embedding"
    UNKNOWN_EMBEDDING_COLUMN = "unknown-embedding-column"
    # retention and holds
    RETENTION_COLUMN = "retention-column"
    RETENTION_TYPE = "retention-type"
    RETENTION_KEEP = "retention-keep"
    DUPLICATE_HOLD = "duplicate-hold"
    HOLD_CONDITION = "hold-condition"
    # services
    SERVICE_SCHEDULE = "service-schedule"
    SERVICE_TRIGGER = "service-trigger"
    SERVICE_OPTION = "service-option"
    UNKNOWN_CLUSTER = "unknown-cluster"
    # renames
    RENAMED_FROM_ITSELF = "renamed-from-itself"
    RENAMED_FROM_DECLARED = "renamed-from-declared"
    RENAMED_FROM_TWICE = "renamed-from-twice"
    # names of columns in files
    SOURCE_REPEATED = "source-repeated"
    SOURCE_OF_ANOTHER = "source-of-another"
    SOURCE_CHARACTERS = "source-characters"
    SOURCE_OF_A_FIELD = "source-of-a-field"
    # SQL of columns
    SQL_OF_A_FIELD = "sql-of-a-field"
    SQL_EXPRESSION = "sql-expression"
    # computed columns
    COMPUTED = "computed"
    COMPUTED_INPUT = "computed-input"
    COMPUTED_CYCLE = "computed-cycle"
    COMPUTED_VERSION = "computed-version"
