"""kube-scheduler as one of our controllers: controller.py decides, the modules beside it are its parts."""
