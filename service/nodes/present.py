"""Node row → wire."""

from service.nodes.tables import NodeTable
from service.wire.nodes import NodeOut


def present_node(table: NodeTable) -> NodeOut:
    return NodeOut.model_validate(table.row)
