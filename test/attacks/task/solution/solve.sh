echo 'echo $(($1 + $2))' > /workspace/add.sh
