"""Rerun's protocol `rerun.cloud.v1alpha1` as data, the message classes made from that data, and the encoding of rows
in messages.

The data has the names, numbers and types of fields from re_protos 0.28.2 (MIT or Apache-2.0). No code is generated.

The rest of `deployer.catalog` may import it.
"""
