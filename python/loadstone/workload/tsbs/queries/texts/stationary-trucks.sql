SELECT {tag_as:t.name}, {tag_as:t.driver}
		FROM tags t 
		INNER JOIN readings r ON r.tags_id = t.id 
		WHERE time >= '{start}' AND time < '{end}'
		AND {tag:t.name} IS NOT NULL
		AND {tag:t.fleet} = '{fleet}' 
		GROUP BY 1, 2 
		HAVING avg(r.velocity) < 1
