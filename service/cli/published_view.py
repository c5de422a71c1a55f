"""Lines of a plan that rest on published speeds, as a buyer reads them."""

from typing import Any

from rich.markup import escape
from rich.table import Table

from service.figures import readable


def published_table(lines: list[dict[str, Any]]) -> Table:
    """Tokens by their makers, and machines of which only speeds are published."""
    table = Table("by published speeds", "serves", "mean (interval)", show_lines=True)
    table.add_column("USD/h", justify="right", no_wrap=True)
    for line in lines:
        sold = line["by_the_token"]
        what = (
            f"[bold]tokens of {escape(sold['id'])}[/bold]\n${float(sold['usd_per_million_input_tokens']):.3g} a million of prompts, "
            f"${float(sold['usd_per_million_output_tokens']):.3g} of replies\non {escape(line['device'])}, {escape(sold['tier'])}"
            if sold is not None
            else f"[bold]{line['nodes']} × {escape(line['node'])}[/bold]\n{line['commitment']}"
        )
        table.add_row(
            what,
            f"[bold]{escape(line['workload'])}[/bold], {line['serves_requests_per_s']:.3g} req/s\n"
            f"{100 * line['share_fraction']:.0f} % of it\n{escape(line['engine'])}, {line['weights']}",
            "\n".join(
                f"{name.upper()} {readable(line[f'{name}_ms']['expected'])} "
                f"({readable(line[f'{name}_ms']['low'])}–{readable(line[f'{name}_ms']['high'])}) ms"
                for name in ("ttft", "tpot")
            ),
            f"{float(line['usd_per_hour']):,.2f}",
        )
    return table
