"""Hours that follow each other as one programme: what a period may do depends on those before it and on all others.

The programmes of single periods (``period``) stand side by side; added are the rules of operation, commitments and batch
work, which tie them. Whole numbers throughout, so that small problems are proven here, and months of large ones planned.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, vstack

from solver.horizon.highs import Programme
from solver.horizon.master import Box
from solver.horizon.operation import changes, soon_after, windows
from solver.horizon.period import PeriodChoice, PeriodModel
from solver.horizon.problem import FloatArray, HorizonProblem, IntArray
from solver.units import SECONDS_PER_HOUR

Terms = dict[int, float]
BATCH_ROUNDING = 1e-9
"""Share of batch work that a sum in floating point may miss."""


class LinkedModel:
    """The periods t of some months, with offers o, deployments d of workload w, and changes (a, b): b follows a.

        min  Σ_c C_c R_c + Σ_t w_t Σ_o c_o n_ot                        (x, n, u, q)_t in the programme of period t
        u_τt ≤ Σ_{c of τ that runs in t} R_c                           and the limits that commitments share
        Σ_t 3600 h_t q_bt ≥ B_b                                        every batch work
        x_dt ≤ X_d y_d,   Σ_{d of w} y_d ≤ K                           at most K configurations of a workload
        n_ob − n_oa ≤ N_o v_oab,   n_oa − n_ob ≤ N_o z_oab             nodes come (v), nodes go (z)
        v_oab + z_oce ≤ 1                                              where (c, e) is fewer than L hours after (a, b)
        s_oab ≥ n_ob − n_oa,   n_ot ≥ Σ_{(a,b) in the last L hours} s_oab     who came in those is there: follows, and is tight
        −Δ_d ≤ x_db − x_da ≤ Δ_d                                       replicas started and stopped

    y, v, z are 0 or 1, s ≥ 0. The months' hours repeat. Some of the months alone are a plan where commitments are given, and no
    workload has more than K deployments to choose from.
    """

    def __init__(
        self,
        problem: HorizonProblem,
        model: PeriodModel,
        months: Sequence[int],
        shared: tuple[csr_array, FloatArray],
        batch_shares: FloatArray | None = None,
    ) -> None:
        """shared: rows and limits of commitments. batch_shares: of each batch work, what these months do; None is all."""
        self.problem, self.model = problem, model
        self.periods = [t for t, period in enumerate(problem.periods) if period.month in set(months)]
        self.sequences = [problem.sequences[month] for month in months] if problem.sequences else []
        self.shared_rows, self.shared_limits = shared
        self.width = len(model.upper)
        most = problem.operation.max_configurations
        counts = np.bincount([d.workload for d in problem.deployments], minlength=len(problem.workloads))
        chosen = [d for d, one in enumerate(problem.deployments) if most is not None and counts[one.workload] > most]
        commitments = len(problem.commitments)
        self.uses = {d: commitments + i for i, d in enumerate(chosen)}
        first = commitments + len(self.uses)
        self.block = {t: first + i * self.width for i, t in enumerate(self.periods)}
        first += len(self.periods) * self.width
        pairs = [pair for sequence in self.sequences for pair in changes(sequence)]
        up = problem.operation.min_up_hours
        usable = [o for o, column in enumerate(model.nodes) if up > 1 and model.upper[column] > 0.0]
        self.starts = {(o, *pair): first + i for i, (o, pair) in enumerate((o, pair) for o in usable for pair in pairs)}
        """Nodes that come with a change; the columns of v and z follow in the same order."""
        self.pairs = pairs
        self.columns = first + 3 * len(self.starts)
        self._rows: list[tuple[Terms, float, float]] = []
        self._add_commitments()
        self._add_uses()
        self._add_up_time()
        self._add_changes()
        self._add_batch(np.ones(len(problem.batch)) if batch_shares is None else batch_shares)
        self.matrix, self.row_lower, self.row_upper = self._assembled()

    def _row(self, terms: Terms, low: float, high: float) -> None:
        self._rows.append((terms, low, high))

    def _add_commitments(self) -> None:
        problem, model = self.problem, self.model
        for t, block in self.block.items():
            live = problem.live[:, problem.periods[t].month] if problem.commitments else ()
            for node_type, column in model.used.items():
                terms = {block + column: 1.0}
                terms |= {
                    c: -1.0 for c, one in enumerate(problem.commitments) if one.node_type == node_type and live[c]
                }
                self._row(terms, -np.inf, 0.0)

    def _add_uses(self) -> None:
        problem = self.problem
        for d, use in self.uses.items():
            for block in self.block.values():
                column = self.model.replica[d]
                self._row({block + column: 1.0, use: -float(self.model.upper[column])}, -np.inf, 0.0)
        for w in {problem.deployments[d].workload for d in self.uses}:
            mine = {use: 1.0 for d, use in self.uses.items() if problem.deployments[d].workload == w}
            assert problem.operation.max_configurations is not None
            self._row(mine, 0.0, float(problem.operation.max_configurations))

    def _add_up_time(self) -> None:
        count = len(self.starts)
        for (o, a, b), start in self.starts.items():
            column = self.model.nodes[o]
            before, now, most = self.block[a] + column, self.block[b] + column, float(self.model.upper[column])
            self._row({start: 1.0, now: -1.0, before: 1.0}, 0.0, np.inf)
            self._row({now: 1.0, before: -1.0, start + count: -most}, -np.inf, 0.0)
            self._row({before: 1.0, now: -1.0, start + 2 * count: -most}, -np.inf, 0.0)
        usable = sorted({o for o, _, _ in self.starts})
        up = self.problem.operation.min_up_hours
        for sequence in self.sequences if usable else ():
            for t, steps in windows(sequence, up):
                for o in usable:
                    terms = {self.block[t] + self.model.nodes[o]: 1.0}
                    for a, b in steps:
                        start = self.starts[o, a, b]
                        terms[start] = terms.get(start, 0.0) - 1.0
                    self._row(terms, 0.0, np.inf)
            for came, went in soon_after(sequence, up):
                for o in usable:
                    come, go = self.starts[o, *came] + count, self.starts[o, *went] + 2 * count
                    self._row({come: 1.0, go: 1.0}, -np.inf, 1.0)

    def _add_changes(self) -> None:
        for d, deployment in enumerate(self.problem.deployments):
            most = self.problem.most_changed(deployment)
            if most is None:
                continue
            column = self.model.replica[d]
            for a, b in {(min(pair), max(pair)) for pair in self.pairs}:
                self._row({self.block[b] + column: 1.0, self.block[a] + column: -1.0}, -float(most), float(most))

    def _add_batch(self, shares: FloatArray) -> None:
        for b, work in enumerate(self.problem.batch):
            share = SECONDS_PER_HOUR / work.requests
            terms = {
                block + self.model.batch[b]: self.problem.periods[t].hours * share for t, block in self.block.items()
            }
            self._row(terms, float(shares[b]) * (1.0 - BATCH_ROUNDING), np.inf)

    def _assembled(self) -> tuple[csr_array, FloatArray, FloatArray]:
        model, count = self.model, len(self.periods)
        lead, tail = len(self.problem.commitments) + len(self.uses), 3 * len(self.starts)
        body = block_diag([model.matrix] * count) if count and self.width else coo_array((0, count * self.width))
        body = coo_array(
            (body.data, (body.row, body.col + lead)), shape=(body.shape[0], lead + count * self.width + tail)
        )
        shared = self.shared_rows.tocoo()
        entries = [(r, v, value) for r, (terms, _, _) in enumerate(self._rows) for v, value in terms.items()]
        own = coo_array(
            ([e[2] for e in entries], ([e[0] for e in entries], [e[1] for e in entries])),
            shape=(len(self._rows), self.columns),
        )
        limits = coo_array((shared.data, (shared.row, shared.col)), shape=(shared.shape[0], self.columns))
        nothing = np.zeros(self.model.types)
        lower = [model.bounds(t, nothing)[0] for t in self.periods] if self.width else []
        row_lower = np.concatenate([*lower, [row[1] for row in self._rows], np.full(len(self.shared_limits), -np.inf)])
        high = np.tile(model.row_upper, count) if self.width else np.zeros(0)
        row_upper = np.concatenate([high, [row[2] for row in self._rows], self.shared_limits])
        return vstack([body, own, limits]).tocsr(), row_lower, row_upper

    def programme(self, box: Box) -> Programme:
        """With commitments inside a box."""
        problem, model = self.problem, self.model
        committed = problem.committed(box.high)
        lower, upper = np.zeros(self.columns), np.full(self.columns, np.inf)
        lower[: len(box.low)], upper[: len(box.high)] = box.low, box.high
        whole = np.ones(self.columns, dtype=np.bool_)
        cost = np.zeros(self.columns)
        cost[: len(box.low)] = problem.present_usd_per_node
        hourly = model.costs(np.zeros(model.types))
        for use in self.uses.values():
            upper[use] = 1.0
        for t, block in self.block.items():
            inside = slice(block, block + self.width)
            upper[inside] = model.bounds(t, committed[problem.periods[t].month])[1]
            whole[inside] = model.whole
            cost[inside] = hourly * problem.weights[t]
        for start in self.starts.values():
            whole[start] = False
            upper[start + len(self.starts)] = upper[start + 2 * len(self.starts)] = 1.0
        return Programme(cost, self.matrix, self.row_lower, self.row_upper, lower, upper, whole)

    def values(self, nodes: IntArray, choices: Mapping[int, PeriodChoice]) -> FloatArray:
        """A plan as a column vector. choices: by period."""
        x = np.zeros(self.columns)
        x[: len(nodes)] = nodes
        for t, block in self.block.items():
            x[block : block + self.width] = self.model.values(choices[t])
        for d, use in self.uses.items():
            x[use] = float(any(choices[t].replicas[d] for t in self.periods))
        for (o, a, b), start in self.starts.items():
            more = choices[b].hourly[o] - choices[a].hourly[o]
            x[start] = max(0, more)
            x[start + len(self.starts)], x[start + 2 * len(self.starts)] = float(more > 0), float(more < 0)
        return x

    def read(self, values: FloatArray) -> tuple[IntArray, dict[int, PeriodChoice]] | None:
        """Commitments and choices by period; None where rounding breaks a period."""
        nodes = np.round(values[: len(self.problem.commitments)]).astype(np.int64)
        committed = self.problem.committed(nodes)
        choices = {}
        for t, block in self.block.items():
            upper = self.model.bounds(t, committed[self.problem.periods[t].month])[1]
            choice = self.model.read(t, values[block : block + self.width], upper)
            if choice is None:
                return None
            choices[t] = choice
        return nodes, choices
