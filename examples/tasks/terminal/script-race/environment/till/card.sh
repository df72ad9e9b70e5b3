#!/bin/bash
# Talks to the card terminal.
sleep 0.05
