import sys
code = dict(line.split() for line in """
s 0
j 1
t 2
n 3
e 4
p 5
a 6
w 7
h 8
v 9
""".strip().splitlines())
print(sum(int("".join(code[letter] for letter in line.split()[1])) for line in open(sys.argv[1])))
