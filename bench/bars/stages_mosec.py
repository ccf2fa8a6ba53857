"""The stages of stages.py, served by mosec: python stages_mosec.py --address 127.0.0.1 --port PORT"""

import json

import mosec
import stages


class First(mosec.Worker):
    def forward(self, data):
        return stages.first(len(data["input"]))


class Second(mosec.Worker):
    def forward(self, data):
        return {"output": stages.second(data), "default": False}

    def serialize(self, data):
        return json.dumps(data, separators=(",", ":")).encode()


if __name__ == "__main__":
    server = mosec.Server()
    server.append_worker(First, num=2)
    server.append_worker(Second, num=2)
    server.run()
