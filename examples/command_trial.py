# A trial in Python, without any package: the sweep config/command.yaml runs it. Gradient descent with momentum on
# a narrow valley; its arguments are the parameters, its reports the lines that begin with "tune:".
import argparse
import json

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--epochs", type=int, default=9)
arguments = parser.parse_args()

x, y, vx, vy = 1.0, 1.0, 0.0, 0.0
for epoch in range(arguments.epochs):
    for _ in range(10):
        vx = arguments.momentum * vx - arguments.lr * 2 * x
        vy = arguments.momentum * vy - arguments.lr * 40 * y
        x, y = x + vx, y + vy
    print("tune:", json.dumps({"epoch": epoch + 1, "loss": x * x + 20 * y * y}), flush=True)
