"""What is proven about placements and orders: tables and their bounds, closed-form prices, CP-SAT models."""
