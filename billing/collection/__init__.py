"""Collects what invoices say by Stripe, and follows up those that are not paid."""
