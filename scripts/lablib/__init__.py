# SPDX-License-Identifier: GPL-2.0-or-later
"""The laboratory: experiment files in, time series, tables, plots out.

  plan      what a file asks for, as erdma-sim reads it
  backends  who carries a run out; a module for each
  results   the directory of results, and what keeps it from harm
  series    time series of a run: columns, reading
  metrics   what is measured in a run; summaries over repetitions
  stats     means and their confidence
  plots     what is drawn; gnuplot writes and runs the scripts
"""
