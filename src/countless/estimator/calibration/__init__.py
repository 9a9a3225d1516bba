"""Calibration: intervals from queries whose true counts are known."""
