SELECT {seconds:60} AS minute,
        {aggregates}
        FROM cpu
        WHERE {hosts} AND time >= '{start}' AND time < '{end}'
        GROUP BY minute ORDER BY minute ASC
