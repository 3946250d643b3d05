#!/usr/bin/env bash
#SBATCH --job-name=expgen
#SBATCH --nodes={{ nodes }}
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task={{ cpus }}
{% if gpus %}
#SBATCH --gpus-per-node={{ gpus }}
{% endif %}
#SBATCH --time={{ hours }}:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --no-kill

# Slurm sends SIGTERM to this shell before the time limit; the shell passes it to the command, which saves checkpoints
# and exits with status 143, and the job is requeued. Losing a node only loses the tasks on it.
# Every node needs the same version of expgen on its PATH; --out or --run must be storage that all nodes share.
start=(ray start --num-cpus={{ cpus }} --num-gpus={{ gpus }} --block)
words=({{ command }} --engine ray)
set -uo pipefail
export OMP_NUM_THREADS=1
export RAY_AUTH_MODE=${RAY_AUTH_MODE:-token}  # access to the ports needs this job's token
if [ -z "${RAY_AUTH_TOKEN:-}${RAY_AUTH_TOKEN_PATH:-}" ]; then
  RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  export RAY_AUTH_TOKEN
fi
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')
port=$((20000 + SLURM_JOB_ID % 10000))  # Ray workers use ports 10002 to 19999

nodes_up() {
  ray status --address "$address:$port" 2>/dev/null | grep -c ' node_'
}
await() {  # wait for $1 nodes, at most a few minutes
  for _ in $(seq 60); do
    [ "$(nodes_up)" -ge "$1" ] && break
    sleep 3
  done
}

srun --nodes=1 --ntasks=1 --overlap --nodelist="$head" \
  "${start[@]}" --head --node-ip-address="$address" --port="$port" --include-dashboard=false &
await 1
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --overlap --exclude="$head" \
    "${start[@]}" --address="$address:$port" &
  await "$SLURM_JOB_NUM_NODES"
fi
echo "$(nodes_up) of $SLURM_JOB_NUM_NODES nodes are up"

expgen "${words[@]}" --address "$address:$port" &
command=$!
trap 'kill -TERM $command' TERM
wait $command
status=$?
while kill -0 $command 2>/dev/null; do  # a signal interrupts wait
  wait $command
  status=$?
done
if [ $status -eq 143 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit $status
