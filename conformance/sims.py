#!/usr/bin/env python3
"""Computes the `expected.bin` of the simulations, as `reference.py` does for kernels: plain Python on one grid that
wraps around, no bands, no halos, double precision, from what the examples' comments say they do.

    python3 conformance/sims.py [CASE...]
"""
import json
import math
import struct
import sys

import reference
from reference import ROOT, array, chunks, i32, u32


class Grid:
    """A grid of cells, each a list of numbers; both directions wrap around."""

    def __init__(self, width, height, cells):
        self.width, self.height, self.cells = width, height, cells

    @staticmethod
    def made(width, height, make):
        return Grid(width, height, [make(x, y) for y in range(height) for x in range(width)])

    def at(self, x, y):
        return self.cells[y % self.height * self.width + x % self.width]

    def sides(self, x, y, lane):
        return sum(self.at(x + dx, y + dy)[lane] for dx, dy in [(-1, 0), (1, 0), (0, -1), (0, 1)])

    def corners(self, x, y, lane):
        return sum(self.at(x + dx, y + dy)[lane] for dx in (-1, 1) for dy in (-1, 1))

    def each(self, make):
        return Grid.made(self.width, self.height, lambda x, y: make(x, y, self.at(x, y)))


def first(case, lanes=1):
    return Grid(case["width"], case["height"], chunks(array(case["first"]), lanes))


def poke(case, step):
    return next((poke for poke in case.get("pokes", []) if poke["step"] == step), None)


def around(way, size):
    return way - size if way > size / 2 else way + size if way < -size / 2 else way


def life(case):
    grid = first(case)
    for _ in range(case["steps"] * 2):
        def live(x, y, here, old=grid):
            near = old.sides(x, y, 0) + old.corners(x, y, 0)
            return [int(near == 3 or (near == 2 and here[0] == 1))]
        grid = grid.each(live)
    return grid


def heat(case):
    grid = first(case)
    for _ in range(case["steps"] * 3):
        grid = grid.each(lambda x, y, here, old=grid: [here[0] + 0.1 * (old.sides(x, y, 0) - 4 * here[0])])
    return grid


def wave(case):
    grid = first(case, 2)
    for _ in range(case["steps"]):
        grid = grid.each(
            lambda x, y, here, old=grid: [here[0], i32(here[1] + (i32(old.sides(x, y, 0) - 4 * here[0]) >> 2))])
        grid = grid.each(lambda x, y, here: [i32(here[0] + here[1]), here[1]])
    return grid


def poked(case):
    grid = Grid.made(case["width"], case["height"], lambda x, y: [y * case["width"] + x])
    for step in range(case["steps"]):
        stroke = poke(case, step)

        def count(x, y, here, old=grid):
            value = old.at(x, y + 1)[0] * 3 + y + step * 1000
            if stroke and math.dist((x, y), stroke["at"]) < stroke["radius"]:
                value += int(stroke["by"][0] + stroke["by"][1] * 10 + stroke["strength"] * 100)
            return [u32(value)]
        grid = grid.each(count)
    return grid


def pcg(number):
    h = u32(number * 747796405 + 2891336453)
    h = u32(((h >> ((h >> 28) + 4)) ^ h) * 277803737)
    return (h >> 22) ^ h


def reaction_diffusion(case):
    feed, kill = case["params"]["feed"], 0.06
    width, height = case["width"], case["height"]
    grid = Grid.made(
        width, height, lambda x, y: [0.5, 0.4] if pcg(y // 8 * 7919 + x // 8) % 48 == 0 else [1.0, 0.0])
    for step in range(case["steps"]):
        stroke = poke(case, step)
        for _ in range(8):
            def react(x, y, here, old=grid):
                food, eater = here
                spread = [0.2 * old.sides(x, y, lane) + 0.05 * old.corners(x, y, lane) - here[lane] for lane in (0, 1)]
                eaten = food * eater * eater
                food += spread[0] - eaten + feed * (1 - food)
                eater += 0.5 * spread[1] + eaten - (kill + feed) * eater
                if stroke:
                    way = [around(x - stroke["at"][0], width), around(y - stroke["at"][1], height)]
                    if math.hypot(*way) < stroke["radius"]:
                        eater = max(eater, 0.5)
                return [food, eater]
            grid = grid.each(react)
    return grid


def bump(way, reach):
    return max(1 - (way[0] ** 2 + way[1] ** 2) * reach, 0) ** 2


def spring(size, x, y):
    """The way from the spring of the tile a place is in, and whether it is coral."""
    tiles = [max(side // 80, 1) for side in size]
    tile = [min(at * count // side, count - 1) for at, count, side in zip((x, y), tiles, size)]
    number = tile[1] * tiles[0] + tile[0]
    way = []
    for axis, at in enumerate((x, y)):
        room = size[axis] // tiles[axis]
        middle = tile[axis] * size[axis] // tiles[axis] + room // 4 + pcg(number + 4096 * axis) % max(room // 2, 1)
        way.append(at - middle)
    return way, sum(tile) % 2 == 0


def fluid(case):
    size = case["width"], case["height"]

    def init(x, y):
        way, is_coral = spring(size, x, y)
        drop = bump(way, 1 / 1024)
        turn = (1 if is_coral else -1) * drop * 0.08
        return [-way[1] * turn, way[0] * turn] + ([drop, 0.0] if is_coral else [0.0, drop]) + [0.0, 0.0]
    grid = Grid.made(*size, init)
    for step in range(case["steps"]):
        stroke = poke(case, step)
        grid = grid.each(lambda x, y, here, old=grid: advected(size, old, x, y, here, stroke))
        grid = grid.each(lambda x, y, here, old=grid: here[:5] + [0.5 * (
            old.at(x + 1, y)[0] - old.at(x - 1, y)[0] + old.at(x, y + 1)[1] - old.at(x, y - 1)[1])])
        for _ in range(10):
            grid = grid.each(
                lambda x, y, here, old=grid: here[:4] + [0.25 * (old.sides(x, y, 4) - here[5]), here[5]])
        grid = grid.each(lambda x, y, here, old=grid: [
            here[0] - 0.5 * (old.at(x + 1, y)[4] - old.at(x - 1, y)[4]),
            here[1] - 0.5 * (old.at(x, y + 1)[4] - old.at(x, y - 1)[4])] + here[2:])
    return grid


def advected(size, old, x, y, here, stroke):
    way = [max(-3, min(3, -here[axis])) for axis in (0, 1)]
    at = [math.floor(part) for part in way]
    part = [way[axis] - at[axis] for axis in (0, 1)]
    corners = [old.at(x + at[0] + dx, y + at[1] + dy) for dy in (0, 1) for dx in (0, 1)]

    def blend(lane):
        a, b, c, d = [corner[lane] for corner in corners]
        top, bottom = a + (b - a) * part[0], c + (d - c) * part[0]
        return top + (bottom - top) * part[1]
    source, is_coral = spring(size, x, y)
    fed = bump(source, 1 / 64) * 0.05
    ink = [blend(2) * 0.998 + (fed if is_coral else 0), blend(3) * 0.998 + (0 if is_coral else fed)]
    velocity = [blend(0) * 0.9995, blend(1) * 0.9995 + (ink[1] - ink[0]) * 0.018]
    if stroke:
        from_poke = [around(at - of, side) for at, of, side in zip((x, y), stroke["at"], size)]
        # The next power of two.
        reach = 2.0 ** -math.ceil(math.log2(stroke["radius"] ** 2))
        push = bump(from_poke, reach) * stroke["strength"]
        velocity = [v + by * push for v, by in zip(velocity, stroke["by"])]
    return velocity + ink + here[4:]


EXPECTED = {"life": life, "heat": heat, "wave": wave, "poked": poked,
            "reaction-diffusion": reaction_diffusion, "fluid": fluid}


def main():
    for name in sys.argv[1:] or EXPECTED:
        folder = ROOT / "sims" / name
        case = json.loads((folder / "case.json").read_text())
        numbers = [number for cell in EXPECTED[name](case).cells for number in cell]
        code = reference.CODES[case["expect"]["type"]]
        (folder / "expected.bin").write_bytes(struct.pack(f"<{len(numbers)}{code}", *numbers))
        print(f"sims/{name}: {len(numbers)} values")


if __name__ == "__main__":
    main()
