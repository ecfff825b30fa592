SELECT {seconds:3600} AS hour,
        {aggregates}
        FROM cpu
        WHERE {hosts} AND time >= '{start}' AND time < '{end}'
        GROUP BY hour ORDER BY hour
