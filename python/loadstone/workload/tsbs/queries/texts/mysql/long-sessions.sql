SELECT {tag_as:t.name}, {tag_as:t.driver}
		FROM tags t
		INNER JOIN
			(SELECT {bucket:10 minutes|time} AS ten_minutes, tags_id
			FROM readings
			WHERE time >= '{start}' AND time < '{end}'
			GROUP BY ten_minutes, tags_id
			HAVING avg(velocity) > 1) AS r ON t.id = r.tags_id
		WHERE {tag:t.name} IS NOT NULL
		AND {tag:t.fleet} = '{fleet}'
		GROUP BY name, driver
		HAVING count(r.ten_minutes) > {periods}
