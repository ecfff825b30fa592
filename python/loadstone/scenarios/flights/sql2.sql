select count(*) from flights where origin_country = 'USA'
