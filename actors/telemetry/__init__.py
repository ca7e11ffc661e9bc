"""What is told of a host to those who watch it from outside: OpenTelemetry spans and metrics, and stdlib logging.

Theory of operation
    This room is imported by whatever does something worth telling, as `logging` is: nothing is handed around. Its files:
    `names` is pure (what things are called, made from plain values), `backend` finds the OpenTelemetry SDK if the program has
    set one up, `notes` is one thing that is going on (a span, and its duration), `connects`, `calls` and `operations` are the
    kinds of it, `gauges` reads published snapshots, `log` writes records.

    Three rules hold everywhere. Nothing is imported for it: OpenTelemetry is used once somebody else has imported it, and as
    long as no SDK is set up nothing is made. Nothing of it can fail: what an SDK, an exporter or a handler raises is caught
    where it is called. Nothing secret goes in: no argument, result, header, variable, or part of a URL but host and port; and
    texts that come from servers go through the scrubber of their connection.
"""
