"""What admission makes of limits: LimitRanges, ResourceQuotas and Pod Security Standards, as kube-apiserver does."""
