SELECT {tag_as:t.name}, {tag_as:t.driver}, d.* 
		FROM tags t INNER JOIN LATERAL 
			(SELECT current_load 
			FROM diagnostics d 
			WHERE d.tags_id=t.id 
			ORDER BY time DESC LIMIT 1) d ON true 
		WHERE {tag:t.name} IS NOT NULL
		AND d.current_load/{number:t.load_capacity} > 0.9 
		AND {tag:t.fleet} = '{fleet}'
