"""The Switch Engine: configurations, custom broadcasts, routes and snoop bitmaps."""
