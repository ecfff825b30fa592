
        WITH cpu_avg AS (
          SELECT {seconds:3600} as hour, {partition},
          {aggregates}
          FROM cpu
          WHERE time >= '{start}' AND time < '{end}'
          GROUP BY 1, 2
        )
        SELECT hour, {host}, {means}
        FROM cpu_avg
        {join}
        ORDER BY hour, {host}
