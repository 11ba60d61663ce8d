"""Sums, and what adds them up."""
