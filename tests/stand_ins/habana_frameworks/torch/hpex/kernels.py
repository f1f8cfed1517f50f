from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from habana_frameworks import EVENTS


class FusedSDPA:
    @staticmethod
    def apply(q: Tensor, k: Tensor, v: Tensor, attn_mask: None, dropout_p: float, is_causal: bool) -> Tensor:
        EVENTS.append(f"FusedSDPA {q.dtype}")
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal)
