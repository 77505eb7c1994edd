"""What `tsallax train` leaves in a folder: settings, logs, learning curves, videos."""
