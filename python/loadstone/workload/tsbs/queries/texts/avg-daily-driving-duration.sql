WITH ten_minute_driving_sessions
		AS (
			SELECT {bucket:10 minutes|TIME} AS ten_minutes, tags_id
			FROM readings r
			GROUP BY tags_id, ten_minutes
			HAVING avg(velocity) > 1
			), daily_total_session
		AS (
			SELECT {bucket:24 hours|ten_minutes} AS day, tags_id, count(*) {div} 6 AS hours
			FROM ten_minute_driving_sessions
			GROUP BY day, tags_id
			)
		SELECT {tag_as:t.fleet}, {tag_as:t.name}, {tag_as:t.driver}, avg(d.hours) AS avg_daily_hours
		FROM daily_total_session d
		INNER JOIN tags t ON t.id = d.tags_id
		GROUP BY fleet, name, driver
