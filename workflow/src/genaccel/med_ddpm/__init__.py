"""Med-DDPM: mask-conditioned 3D diffusion (Dorjsembe et al., IEEE JBHI 2024)."""
