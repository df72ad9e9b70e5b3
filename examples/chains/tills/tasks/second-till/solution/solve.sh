#!/bin/bash
python3 /solution/total.py /workspace/till.txt > /workspace/total.txt
