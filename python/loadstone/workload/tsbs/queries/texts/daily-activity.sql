SELECT {tag_as:t.fleet}, {tag_as:t.model}, y.day, sum(y.ten_mins_per_day) / 144 AS daily_activity
		FROM tags t
		INNER JOIN (
			SELECT {bucket:24 hours|TIME} AS day, {bucket:10 minutes|TIME} AS ten_minutes, tags_id, count(*) AS ten_mins_per_day
			FROM diagnostics
			GROUP BY day, ten_minutes, tags_id
			HAVING avg(STATUS) < 1
			) y ON y.tags_id = t.id
		WHERE {tag:t.name} IS NOT NULL
		GROUP BY fleet, model, y.day
		ORDER BY y.day
