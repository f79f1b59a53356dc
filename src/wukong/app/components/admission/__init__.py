"""The component admission: pods get what their policy says as they are created; our own kinds are checked."""

from wukong.app.components.admission.component import ADMISSION
from wukong.app.components.admission.options import AdmissionOptions

__all__ = ["ADMISSION", "AdmissionOptions"]
