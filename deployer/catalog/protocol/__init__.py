"""Rerun's protocol `rerun.cloud.v1alpha1` as data, the message classes made from it, and rows in its messages.

The facts are those of re_protos 0.28.2 (MIT or Apache-2.0): names, numbers and types of fields. No code is generated.

The rest of `deployer.catalog` may import it.
"""
