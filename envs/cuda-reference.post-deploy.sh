#!/usr/bin/env bash
# Snakemake runs this in the new environment: packages used for their data alone, without what they ask for.
set -euo pipefail
pip install --no-deps nilearn==0.13.1 deepbet==1.0.2
