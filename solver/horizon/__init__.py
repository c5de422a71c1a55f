"""A fleet over time: what to commit to, and what to take by the hour in each period, with a proven bound.

``problem`` states it, ``period`` solves one period, ``master`` joins the periods through the commitments, ``solve``
searches and proves, ``verify`` checks a plan knowing none of them. The mathematics is in docs/mathematics.md.
"""
