SELECT {seconds:60} AS minute, max(usage_user)
        FROM cpu
        WHERE time < '{end}'
        GROUP BY minute
        ORDER BY minute DESC
        LIMIT 5
