"""Changes of workloads on any cluster: read, tried, written, followed, and undone. Used by `wukong patch` and its like.

reading      a workload with its versions and pods, as they are now
observation  when to look again: a watch of a live cluster; tests have one of an embedded world
writing      one patch, at the version that was read
following    a rollout until it is over
canary       a rollout on a few pods, until they are judged
"""
