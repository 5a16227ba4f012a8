"""A line search for the strong Wolfe conditions: bracket a good step, then narrow the bracket by cubic interpolation.

The loss must have fallen by enough (Armijo, c1) and its slope along the direction must have become flat enough (curvature, c2).
"""
import collections
import math

Point = collections.namedtuple("Point", ["step", "loss", "gradient", "slope"])
C1, C2, TOLERANCE = 1e-4, 0.9, 1e-9


def cubic_minimum(a, b, bounds=None):
    """The step where the cubic through two points with their slopes is least, held within `bounds` (their interval); its middle where there is none."""
    low, high = bounds or sorted((a.step, b.step))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.step - b.step)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2.0
    near, far = (a, b) if a.step <= b.step else (b, a)
    d2 = math.sqrt(square)
    place = far.step - (far.step - near.step) * ((far.slope + d2 - d1) / (far.slope - near.slope + 2 * d2))
    return min(max(place, low), high)


def strong_wolfe(evaluate, t, direction, loss, gradient, slope, limit):
    """(loss, gradient, step, calls): a step along `direction`, starting from t, that meets both conditions, or the best of `limit` tries.

    evaluate(step) -> (loss, gradient [n]); loss, gradient and slope are those at step 0.
    """
    calls = 0

    def at(step):
        nonlocal calls
        calls += 1
        found, g = evaluate(step)
        return Point(step, found, g, g.dot(direction).item())

    def falls_too_little(point):
        return point.loss > loss + C1 * point.step * slope

    start = previous = Point(0, loss, gradient.clone(), slope)
    point = at(t)
    tries, bracket, done = 0, None, False
    while tries < limit:
        if falls_too_little(point) or tries > 1 and point.loss >= previous.loss:
            bracket = [previous, point]
            break
        if abs(point.slope) <= -C2 * slope:
            bracket, done = [point], True
            break
        if point.slope >= 0:
            bracket = [previous, point]
            break
        bounds = point.step + 0.01 * (point.step - previous.step), point.step * 10
        previous, point = point, at(cubic_minimum(previous, point, bounds))
        tries += 1
    if tries == limit:
        bracket = [start, point]
    length = float(direction.abs().max())
    low, high = (0, -1) if bracket[0].loss <= bracket[-1].loss else (-1, 0)
    stuck = False
    while not done and tries < limit and abs(bracket[1].step - bracket[0].step) * length >= TOLERANCE:
        step, stuck = _inside(cubic_minimum(*bracket), [p.step for p in bracket], stuck)
        point = at(step)
        tries += 1
        if falls_too_little(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if abs(point.slope) <= -C2 * slope:
            done = True
        elif point.slope * (bracket[high].step - bracket[low].step) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
    best = bracket[low]
    return best.loss, best.gradient, best.step, calls


def _inside(step, ends, stuck):
    """A trial step kept off the ends of the bracket where tries there gain too little, and whether this one is close to an end."""
    low, high = min(ends), max(ends)
    margin = 0.1 * (high - low)
    if min(high - step, step - low) >= margin:
        return step, False
    if not (stuck or step >= high or step <= low):
        return step, True
    return (high - margin if abs(step - high) < abs(step - low) else low + margin), False
