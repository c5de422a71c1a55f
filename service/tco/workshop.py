"""What the application keeps for planning, for routes that ask the planner a question of their own."""

from fastapi import Request

from service.recommendations.create import Workshop


def workshop_of(request: Request) -> Workshop:
    state = request.app.state
    return Workshop(state.database, state.snapshots, state.solver_pool, state.metrics, state.clock, state.spaces)
